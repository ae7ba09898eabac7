# SPDX-License-Identifier: Apache-2.0
"""A module of about the size of a large dump: layers of products and activations, with fusions, scopes and source lines."""


def large_module(size=4_000_000):
    """HLO text of at least `size` characters."""
    parts = ["HloModule large, entry_computation_layout={(f32[64,256]{1,0}, f32[256,256]{1,0})->f32[64,256]{1,0}}\n\n"]
    body = []
    written = 0
    layer = 0
    previous = "x"
    while written < size:
        scope = f"jit(train_step)/transformer/layer_{layer}"
        source = 'source_file="/src/models/transformer.py"'
        fused = (f"%fused_computation.{layer} (p0.{layer}: f32[64,256], p1.{layer}: f32[64,256]) -> f32[64,256] {{\n"
                 f"  %p0.{layer} = f32[64,256]{{1,0}} parameter(0)\n  %p1.{layer} = f32[64,256]{{1,0}} parameter(1)\n"
                 f'  %tanh.{layer} = f32[64,256]{{1,0}} tanh(%p0.{layer}), metadata={{op_name="{scope}/mlp/tanh" {source} source_line={layer % 900 + 1}}}\n'
                 f'  ROOT %add.{layer} = f32[64,256]{{1,0}} add(%tanh.{layer}, %p1.{layer}), metadata={{op_name="{scope}/mlp/add" {source} source_line={layer % 900 + 2}}}\n}}\n\n')
        steps = (f'  %dot.{layer} = f32[64,256]{{1,0}} dot(%{previous}, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name="{scope}/attention/dot_general" {source} source_line={layer % 900 + 3}}}\n'
                 f'  %exponential.{layer} = f32[64,256]{{1,0}} exponential(%dot.{layer}), metadata={{op_name="{scope}/attention/exp" {source} source_line={layer % 900 + 4}}}\n'
                 f'  %negate.{layer} = f32[64,256]{{1,0}} negate(%exponential.{layer}), metadata={{op_name="{scope}/attention/neg" {source} source_line={layer % 900 + 5}}}\n'
                 f'  %fusion.{layer} = f32[64,256]{{1,0}} fusion(%negate.{layer}, %{previous}), kind=kLoop, calls=%fused_computation.{layer}, metadata={{op_name="{scope}/mlp/add" {source} source_line={layer % 900 + 2}}}\n')
        parts.append(fused)
        body.append(steps)
        written += len(fused) + len(steps)
        previous = f"fusion.{layer}"
        layer += 1
    parts.append("ENTRY %main (x: f32[64,256], w: f32[256,256]) -> f32[64,256] {\n"
                 "  %x = f32[64,256]{1,0} parameter(0)\n  %w = f32[256,256]{1,0} parameter(1)\n")
    parts.extend(body)
    parts.append(f"  ROOT %result = f32[64,256]{{1,0}} negate(%{previous})\n}}\n")
    return "".join(parts)
