// SPDX-License-Identifier: Apache-2.0
// Types of the document that simulator/export/report_document.cc writes; docs/report.md documents it.
export interface Op {
  name: string;
  category: string;
  operation: string;
  scope: string;
  source: string;
  runs: number;
  time_us: number;
  stall_us: number;
  concurrent: boolean; // with the work or the stalls of the core
  bound_by: string;
  flops: number;
  hbm_bytes: number;
  interconnect_bytes: number;
}
export interface Remark {
  kind: string;
  category: string;
  rule: string;
  instruction: string;
  message: string;
  advice?: string;
  source?: string;
  op_name?: string;
}
export interface Worker {
  device: number;
  compute_us: number;
  exposed_communication_us: number;
  sync_wait_us: number;
  other_wait_us: number;
  idle_us: number;
  communication_us: number;
  hidden_communication_us: number;
}
export interface Share {
  name: string;
  kind: string;
  time_us: number;
}
export interface Recommendation {
  title: string;
  evidence: string;
  action: string;
  simulated: string;
  before_us: number;
  after_us: number;
  peak_bytes_before?: number;
  peak_bytes_after?: number;
  fits_after?: boolean;
  flag?: string;  // a command that shows more
}
export interface GapPart {
  phase: string;
  step: number;
  time_us: number;
}
export interface Gap {
  start_us: number;
  time_us: number;
  before_step: number;
  filled_by: string;
  parts: GapPart[];
}
// track, phase, step, start_us, time_us, is_wait
export type ActivityRow = [string, string, number, number, number, number];
// scope, step, start_us, time_us
export type SpanRow = [string, number, number, number];
// name, start_us, time_us, step, is_user, source, phase
export type ThreadRow = [string, number, number, number, number, string, string];
export interface Thread {
  thread: string;
  omitted: number;
  spans: ThreadRow[];
  device?: number;  // that it runs
  straggler?: boolean;
}
// Of a scope or a source line, independent of fusion.
export interface Attributed {
  time_us: number;
  concurrent_us: number;
  kernels: number;
  in_mixed_kernels_us: number;
  flops: number;
  hbm_bytes: number;
}
export interface Graph {
  module: string;
  runs_per_step: number;
  device_time_us: number;
  time_per_step_us: number;
  peak_bytes: number;
  fits: boolean;
  compile: { modeled_us: number; measured_us?: number; instructions: number; kernels: number; source: string };
}
// line, depth, start_us, time_us, name, bound_by, events, category
export type EventRow = [number, number, number, number, string, string, number, string];
export interface OpMemory {
  name: string;
  operation: string;
  scope: string;
  source: string;
  allocation_bytes: number;
  size_increase_bytes: number;
  self_bytes: number;
  live_bytes?: number;  // of operations of the entry computation
  vmem_bytes?: number;
  computation?: string;  // the called computation
}
export interface LiveGroup {
  name: string;
  bytes: number;
  arrays: number;
}
export interface Report {
  remarks?: Remark[];  // of the passes that compiled it
  remarks_left_out?: number;
  format: string;
  title: string;
  command: string;
  tool: string;
  flags: string[];
  module: string;
  device: string;
  topology: string;
  chips: number;
  devices: number;
  used_chips: number;
  used_devices: number;
  step_time_us: number;
  notes?: string[]; // of the step time
  device_time_us: number;
  bound_by: string;
  core_busy_us: number;
  core_stall_us: number;
  flops: number;
  hbm_bytes: number;
  interconnect_bytes: number;
  peaks: Record<string, number>;
  utilization: Record<string, number>;
  busy_us: Record<string, number>;
  memory: {
    peak_bytes: number;
    limit_bytes: number;
    fits: boolean;
    parameter_bytes: number;
    padding_bytes_at_peak: number;
    peak_at?: string;
    heap_bytes: number;
    fragmentation_bytes: number;
    ops: OpMemory[];
    live_by_scope: LiveGroup[];
    live_by_source: LiveGroup[];
    live_at_peak: { name: string; shape: string; operation: string; bytes: number; unpadded_bytes: number; scope: string; source: string }[];
    timeline: [number, number, string][];
  };
  unmodeled: { what: string; count: number }[];
  note?: string;
  categories: { category: string; runs: number; time_us: number; concurrent_us: number; flops: number; hbm_bytes: number; interconnect_bytes: number }[];
  ops: Op[];
  breakdown: Share[];
  recommendations: Recommendation[];
  gaps: { count: number; time_us: number; list: Gap[] };
  host: {
    source: string;
    steps: number;
    steady_from: number;
    prefetch: number;
    in_flight: number;
    total_us: number;
    phases: { phase: string; time_per_step_us: number; device_idle_per_step_us: number }[];
    activities: ActivityRow[];
    spans: SpanRow[];
    scopes: { scope: string; time_per_step_us: number; runs: number }[];
    step_numbers?: number[];  // of a recorded program
    threads?: Thread[];
  };
  graphs: Graph[];
  checks: { what: string; parts_us: number; whole_us: number }[];
  missing: { what: string; time_us: number }[];
  uncertainty: { relative: number; model: number; figures: { figure: string; error: number; time_share: number }[] };
  core_stalls: { time_us: number; runs: number; stalled: string; waiting_for: string; opcode?: string; scope?: string; source?: string }[];
  timeline: {
    lines: string[];
    count: number;
    devices: { device: number; straggler: boolean; events: EventRow[] }[];
    utilization: { columns: string[]; width_us: number; rows: number[][] };
  };
  scopes: ({ scope: string } & Attributed)[];
  sources: ({ source: string } & Attributed)[];
  collectives: {
    kind: string;
    runs: number;
    bytes: number;
    time_us: number;
    bytes_per_second: number;
    efficiency: number;
    exposed_us: number;
    sync_wait_us: number;
  }[];
  workers: {
    count: number;
    homogeneous: boolean;
    scaled: boolean;
    stragglers: number[];
    devices: Worker[];
  };
  sensitivity: { resource: string; step_time_us: number; bound_by: string }[];
  other_targets: { target: string; topology: string; step_time_us: number; bound_by: string; peak_bytes: number; limit_bytes: number }[];
  target: { parameter: string; value: number; description: string; source: string }[];
}
