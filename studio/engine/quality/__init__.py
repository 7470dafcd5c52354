"""How good a model is: features, scores, copies, outliers, and the advice that follows from figures."""
