"""Estimators of the transition matrix, for labels whose noise is not known."""

from __future__ import annotations

from postmax.estimation.anchor import AnchorPoints
from postmax.estimation.catalogue import DEFAULT, get, names, register, summary
from postmax.estimation.confident import ConfidentJoint
from postmax.estimation.crossfit import CrossFit
from postmax.estimation.cycle import CycleConsistency
from postmax.estimation.dual_t import DualT
from postmax.estimation.estimate import TransitionEstimate
from postmax.estimation.estimator import RowTensors, Solution, TransitionEstimator, needs_features
from postmax.estimation.evidence import Evidence
from postmax.estimation.hoc import HighOrderConsensus
from postmax.estimation.likelihood import PosteriorLikelihood
from postmax.estimation.run_estimator import estimate_transition
from postmax.estimation.total_variation import TotalVariation
from postmax.estimation.volmin import VolumeMinimisation

__all__ = [
    "DEFAULT",
    "AnchorPoints",
    "ConfidentJoint",
    "CrossFit",
    "CycleConsistency",
    "DualT",
    "Evidence",
    "HighOrderConsensus",
    "PosteriorLikelihood",
    "RowTensors",
    "Solution",
    "TotalVariation",
    "TransitionEstimate",
    "TransitionEstimator",
    "VolumeMinimisation",
    "estimate_transition",
    "get",
    "names",
    "needs_features",
    "register",
    "summary",
]
