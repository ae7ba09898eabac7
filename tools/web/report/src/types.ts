// SPDX-License-Identifier: Apache-2.0
// The document that interp/tpu/export/report_document.cc writes; docs/report.md describes it.
export interface Op {
  name: string;
  category: string;
  scope: string;
  source: string;
  runs: number;
  us: number;
  waited_us: number;
  bound_by: string;
  flops: number;
  hbm_bytes: number;
  wire_bytes: number;
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
  us: number;
}
export interface Advice {
  title: string;
  evidence: string;
  action: string;
  simulated: string;
  before_us: number;
  after_us: number;
  peak_bytes_before?: number;
  peak_bytes_after?: number;
}
export interface GapPart {
  phase: string;
  step: number;
  us: number;
}
export interface Gap {
  start_us: number;
  us: number;
  before_step: number;
  filled_by: string;
  parts: GapPart[];
}
// lane, phase, step, start_us, us, waits
export type ActivityRow = [string, string, number, number, number, number];
// line, depth, start_us, us, name, bound_by, events
export type EventRow = [number, number, number, number, string, string, number];
export interface Report {
  format: string;
  command: string;
  module: string;
  device: string;
  topology: string;
  chips: number;
  devices: number;
  step_time_us: number;
  device_time_us: number;
  bound_by: string;
  core_busy_us: number;
  core_waiting_us: number;
  flops: number;
  hbm_bytes: number;
  wire_bytes: number;
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
    live_at_peak: { name: string; bytes: number; unpadded_bytes: number; scope: string; source: string }[];
    timeline: [number, number, string][];
  };
  missing: { what: string; count: number }[];
  categories: { category: string; runs: number; us: number; flops: number; hbm_bytes: number; wire_bytes: number }[];
  ops: Op[];
  breakdown: Share[];
  advice: Advice[];
  gaps: { count: number; us: number; list: Gap[] };
  host: {
    source: string;
    steps: number;
    steady_from: number;
    prefetch: number;
    in_flight: number;
    seconds: number;
    phases: { phase: string; us_per_step: number; device_waits_us_per_step: number }[];
    activities: ActivityRow[];
    scopes: { scope: string; us_per_step: number; times: number }[];
  };
  core_waits: { us: number; runs: number; waiting: string; waited_for: string; opcode?: string; scope?: string; source?: string }[];
  timeline: { lines: string[]; events: EventRow[] };
  scopes: { scope: string; us: number; kernels: number; in_mixed_kernels_us: number }[];
  collectives: {
    kind: string;
    runs: number;
    bytes: number;
    us: number;
    bytes_per_second: number;
    efficiency: number;
    exposed_us: number;
    sync_wait_us: number;
  }[];
  workers: {
    count: number;
    alike: boolean;
    scaled: boolean;
    stragglers: number[];
    devices: Worker[];
  };
  twice_as_fast: { resource: string; step_time_us: number; bound_by: string }[];
  other_machines: { machine: string; topology: string; step_time_us: number; bound_by: string; peak_bytes: number; limit_bytes: number }[];
  machine: { figure: string; value: number; meaning: string; source: string }[];
}
