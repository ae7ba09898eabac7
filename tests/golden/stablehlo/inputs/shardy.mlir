module @all {
  sdy.mesh @mesh = <["a"=4, "b"=2]>
  sdy.mesh @empty = <[]>
  sdy.mesh @reversed = <["a"=4, "b"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @first = <[], device_ids=[0]> {stablehlo.mesh = {axes = [], device_ids = dense<0> : tensor<1xi64>}}
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {"b", ?}p0]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@reversed, [{"a":(1)2}, {?}], replicated={"b"}>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=8]>, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"a"}>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"a"}>}) {
    %0 = sdy.propagation_barrier %arg0 allowed_direction=BACKWARD : tensor<8x8xf32>
    sdy.sharding_group %arg1 group_id=21 : tensor<8x8xf32>
    %1 = sdy.reshard %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
    %2 = sdy.all_gather [{"a"}, {}] %1 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
    %3 = sdy.all_slice [{"a"}, {"b"}] %2 out_sharding=<@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
    %4 = sdy.all_to_all [{"a"}: 0->1] %1 out_sharding=<@mesh, [{}, {"a"}]> : tensor<8x8xf32>
    %5 = sdy.named_computation<"f">(%4) in_shardings=[<@mesh, [{}, {"a"}]>] out_shardings=[<@mesh, [{}, {"a"}]>] (%arg3: tensor<8x8xf32>) {
      %8 = stablehlo.add %arg3, %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}, custom>} : tensor<8x8xf32>
      sdy.return %8 : tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %6 = stablehlo.dot_general %3, %5, contracting_dims = [1] x [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k} blocked_propagation={i}>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %7 = sdy.manual_computation(%6, %arg1) in_shardings=[<@mesh, [{"a"}, {"b"}]>, <@mesh, [{}, {}], replicated={"a"}>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b"} (%arg3: tensor<2x4xf32>, %arg4: tensor<8x8xf32>) {
      %8 = "stablehlo.all_reduce"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "a", sub_axis_info = (1)2>]>}> ({
      ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
        %9 = stablehlo.add %arg5, %arg6 : tensor<f32>
        stablehlo.return %9 : tensor<f32>
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      sdy.return %8 : tensor<2x4xf32>
    } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %7, %arg2 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
