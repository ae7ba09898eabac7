// SPDX-License-Identifier: Apache-2.0
// Modules for the tests and benchmarks of hlo-view.

// Scopes, a loop of ten iterations, a collective, shardings, a donated parameter, a dead instruction, a recomputed one, and
// a name that would break careless HTML.
export const program = `HloModule two_layers, replica_count=4, input_output_alias={ {1}: (2, {}, may-alias) }

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

body {
  state = (s32[], f32[512,2048]) parameter(0)
  k = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(k, one)
  v = f32[512,2048] get-tuple-element(state), index=1
  act.remat = f32[512,2048] cosine(v)
  ROOT out = (s32[], f32[512,2048]) tuple(next, act.remat)
}

condition {
  state.1 = (s32[], f32[512,2048]) parameter(0)
  k.1 = s32[] get-tuple-element(state.1), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(k.1, ten), direction=LT
}

ENTRY main {
  x = f32[512,2048]{1,0:T(8,128)} parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  w1 = f32[2048,2048] parameter(1), sharding={devices=[1,4]0,1,2,3}
  w2 = f32[2048,2048] parameter(2), sharding={replicated}
  h = f32[512,2048] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={maximal device=2}, metadata={op_name="step/forward/fc1/dot" source_file="/src/model.py" source_line=31}
  t = f32[512,2048] tanh(h), metadata={op_name="step/forward/</script><b>/tanh" source_file="/src/model.py" source_line=32}
  y = f32[512,2048] dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="step/forward/fc2/dot" source_file="/src/model.py" source_line=33}
  idle = f32[512,2048] negate(y), metadata={op_name="step/forward/</script><b>/neg"}
  zero = s32[] constant(0)
  start = (s32[], f32[512,2048]) tuple(zero, y), metadata={op_name="step/loop/tuple"}
  loop = (s32[], f32[512,2048]) while(start), condition=condition, body=body, metadata={op_name="step/loop/while"}
  last = f32[512,2048] get-tuple-element(loop), index=1, metadata={op_name="step/loop/get"}
  w3 = f32[2048,2048] add(w2, w2), metadata={op_name="step/optimizer/add"}
  grad = f32[2048,2048] all-reduce(w3), to_apply=sum, replica_groups={{0,1},{2,3}}, metadata={op_name="step/optimizer/all-reduce"}
  ROOT result = (f32[512,2048], f32[2048,2048]) tuple(last, grad), sharding={{devices=[2,2]<=[4]}, {replicated}}
}
`;

// A tuple in a tuple; elements that are read twice, not at all, and the result.
export const tuples = `HloModule tuples

ENTRY main {
  p = ((f32[2], f32[4]), f32[8]) parameter(0)
  inner = (f32[2], f32[4]) get-tuple-element(p), index=0
  four = f32[4] get-tuple-element(inner), index=1
  again = f32[4] get-tuple-element(inner), index=1
  unused = f32[2] get-tuple-element(inner), index=0
  eight = f32[8] get-tuple-element(p), index=1
  sum = f32[4] add(four, again)
  join = ((f32[4], f32[8]), f32[4]) custom-call(sum, eight), custom_call_target="join"
  ROOT first = (f32[4], f32[8]) get-tuple-element(join), index=0
}
`;

// A step as JAX lowers it: two scopes of the model, then so many instructions of the optimizer without one.
export function trainingStep(optimizer) {
  const lines = ["HloModule jit_step", "", "ENTRY main {", "  f0 = f32[64,64] parameter(0)", "  w = f32[64,64] parameter(1)"];
  const add = (name, opcode, operands, scope) => lines.push(`  ${name} = f32[64,64] ${opcode}(${operands}), metadata={op_name="jit(step)/${scope}${opcode}"}`);
  for (let k = 0; k < 200; ++k) add(`f${k + 1}`, k % 2 ? "tanh" : "multiply", k % 2 ? `f${k}` : `f${k}, w`, `jvp(Model)/layer_${Math.floor(k / 20)}/`);
  for (let k = 0; k < 300; ++k) add(`b${k + 1}`, "multiply", `${k ? `b${k}` : "f200"}, f${200 - Math.floor(k / 2)}`, `transpose(jvp(Model))/layer_${Math.floor((299 - k) / 30)}/`);
  for (let k = 0; k < optimizer; ++k) add(`o${k}`, ["multiply", "add", "divide"][k % 3], `${k % 30 ? `o${k - 1}` : `b${(k % 300) + 1}`}, w`, "");
  const results = Array.from({ length: Math.ceil(optimizer / 30) }, (_, k) => `o${Math.min(optimizer, 30 * k + 30) - 1}`);
  return `${lines.join("\n")}\n  ROOT new = (${results.map(() => "f32[64,64]").join(", ")}) tuple(${results.join(", ")})\n}\n`;
}

// So many scopes of a size in a row, then so many instructions without one.
export function manyScopes(scopes, size, others) {
  const lines = ["HloModule scopes", "", "ENTRY main {", "  x0 = f32[64] parameter(0)"];
  for (let k = 0; k < scopes * size + others; ++k) {
    const scope = k < scopes * size ? `stage_${Math.floor(k / size)}/` : "";
    lines.push(`  ${k + 1 === scopes * size + others ? "ROOT " : ""}x${k + 1} = f32[64] negate(x${k}), metadata={op_name="jit(step)/${scope}neg"}`);
  }
  return `${lines.join("\n")}\n}\n`;
}

// So many products and sorts in a row, with scopes and source lines.
export function chain(instructions) {
  const lines = ["HloModule large", "", "less {", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)", "  ROOT c = pred[] compare(a, b), direction=LT", "}", "",
    "ENTRY main {", "  x0 = f32[512,512] parameter(0)", "  w = f32[512,512] parameter(1)"];
  for (let k = 0; 2 * k + 6 < instructions; ++k) {
    const scope = `jit(step)/jit(main)/block_${Math.floor(k / 500)}/layer_${Math.floor(k / 20)}`;
    const where = `source_file="/src/model/block_${Math.floor(k / 500)}.py" source_line=${(k % 500) + 1}`;
    lines.push(`  d${k + 1} = f32[512,512] dot(x${k}, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="${scope}/dot_general" ${where}}`);
    lines.push(`  x${k + 1} = f32[512,512] sort(d${k + 1}), dimensions={1}, to_apply=less, metadata={op_name="${scope}/sort" ${where}}`);
  }
  lines[lines.length - 1] = lines[lines.length - 1].replace("  x", "  ROOT x");
  return `${lines.join("\n")}\n}\n`;
}
