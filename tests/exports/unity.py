"""The operators that Unity's engine reads, Sentis 2.5 (formerly the Inference Engine), as its manual lists them.

com.unity.ai.inference 2.5: Documentation~/supported-operators.md, and supported-torch-export-operators.md beside it.
"""

from __future__ import annotations

_ONNX = """
Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization Bernoulli BitwiseAnd
BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu Clip Compress Concat Constant ConstantOfShape
Conv ConvTranspose Cos Cosh CumSum DepthToSpace DFT Div Dropout Einsum Elu Equal Erf Exp Expand Flatten Floor Gather
GatherElements GatherND Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GridSample HammingWindow
HannWindow Hardmax HardSigmoid HardSwish Identity InstanceNormalization IsInf IsNaN LayerNormalization LeakyRelu
Less LessOrEqual Log LogSoftmax LRN LSTM MatMul Max MaxPool Mean MelWeightMatrix Min Mod Mish Mul Multinomial Neg
NonMaxSuppression NonZero Not OneHot Or Pad Pow PRelu RandomNormal RandomNormalLike RandomUniform RandomUniformLike
Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare Relu Reshape Resize RoiAlign Round Scatter ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign
Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze STFT Sub Sum Tan Tanh ThresholdedRelu
Tile TopK Transpose Trilu Unsqueeze Upsample Where Xor
"""
ONNX = frozenset(_ONNX.split())
# What the manual says of parameters: these are not supported.
ONNX_WITHOUT = {
    "AveragePool": {"ceil_mode", "count_include_pad"},
    "Resize": {"cubic_coeff_a", "exclude_outside", "extrapolation_value"},
}

_CORE_ATEN = """
_adaptive_avg_pool2d _adaptive_avg_pool3d _local_scalar_dense _log_softmax _native_batch_norm_legit
_native_batch_norm_legit_functional _native_batch_norm_legit_no_training _softmax _to_copy abs acos acosh add.Scalar
add.Tensor addmm alias amax amin any any.dim any.dims arange.start_step argmax argmin as_strided asin asinh atan atan2
atan2.out atanh avg_pool1d avg_pool2d avg_pool3d bitwise_and.Scalar bitwise_and.Tensor bitwise_not bitwise_or.Scalar
bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm cat ceil clamp clamp.Tensor clone constant_pad_nd
convolution copy cos cosh cumsum diagonal div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode elu embedding
empty.memory_format empty_strided eq.Scalar eq.Tensor erf exp expand expm1 fill.Scalar flip floor floor_divide
fmod.Scalar fmod.Tensor full full_like gather ge.Scalar ge.Tensor gelu grid_sampler_2d gt.Scalar hardtanh index.Tensor
index_put index_select isinf isnan le.Scalar le.Tensor leaky_relu log log10 log1p log2 logical_and logical_not
logical_or logical_xor lt.Scalar lt.Tensor max.dim max_pool2d_with_indices max_pool3d_with_indices maximum mean
mean.dim min.dim minimum mm mul.Scalar mul.Tensor native_dropout native_group_norm native_layer_norm ne.Scalar
ne.Tensor neg nonzero permute pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod prod.dim_int rand randn randperm
reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu remainder.Scalar remainder.Tensor repeat
replication_pad2d replication_pad3d resize_ round rsqrt scalar_tensor scatter.src scatter.value scatter_add
scatter_reduce.two select.int select_scatter sigmoid sign sin sinh slice.Tensor slice_scatter sort split_with_sizes
sqrt squeeze.dim squeeze.dims sub.Scalar sub.Tensor sum.dim_IntList sym_numel sym_size.int sym_storage_offset
sym_stride.int tan tanh topk trunc unsqueeze upsample_bilinear2d.vec upsample_nearest2d.vec var.correction var.dim view
where.self
"""
CORE_ATEN = frozenset(f"aten.{name}" for name in _CORE_ATEN.split())
