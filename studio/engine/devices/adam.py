"""Adam and AdamW without torch's compiler, whose import costs a new process a second of CPU time and 150 MB.

torch imports its compiler to keep an optimizer's methods and steps out of compiled code (torch/_compile.py,
torch/optim/optimizer.py). The studio compiles networks in one experiment, but never an optimizer.
"""

import inspect

import torch
from torch.optim.adam import adam


def _exclude_from_compilation() -> None:
    """Mark the functions as torch does when they first run, but without its compiler."""
    optimizer = torch.optim.Optimizer
    methods = (optimizer.add_param_group, optimizer.zero_grad, optimizer.state_dict, optimizer.load_state_dict)
    for function in (*methods, adam):
        original = inspect.unwrap(function)
        setattr(original, "__dynamo_disable", original)


_exclude_from_compilation()
_step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))  # without the decorator that imports the compiler


class Adam(torch.optim.Adam):
    """torch.optim.Adam (Kingma & Ba 2015), not differentiable."""

    step = _step


class AdamW(torch.optim.AdamW):
    """torch.optim.AdamW (Loshchilov & Hutter 2019), not differentiable."""

    step = _step
