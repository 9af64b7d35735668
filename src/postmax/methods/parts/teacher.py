"""A network that follows another one slowly, and so remembers what that one was before."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def follow(teacher: nn.Module, student: nn.Module, decay: float) -> None:
    """Move the weights and statistics of a teacher towards those of a student.

    Each number becomes decay·teacher + (1 − decay)·student. With a decay of 0 the teacher becomes a copy. Whole
    numbers, such as the steps that batch normalisation counts, are copied.

    Example:
        >>> teacher, student = nn.Linear(1, 1), nn.Linear(1, 1)
        >>> _ = nn.init.zeros_(teacher.weight), nn.init.ones_(student.weight)
        >>> follow(teacher, student, 0.9)
        >>> round(teacher.weight.item(), 6)
        0.1
    """
    theirs = student.state_dict()
    for name, mine in teacher.state_dict().items():
        if mine.is_floating_point():
            mine.lerp_(theirs[name], 1 - decay)
        else:
            mine.copy_(theirs[name])
