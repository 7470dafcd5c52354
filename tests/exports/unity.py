"""The operators that Unity's engine reads, Sentis 2.5 (formerly the Inference Engine), as its manual lists them.

com.unity.ai.inference 2.5, Documentation~/supported-operators.md.
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
