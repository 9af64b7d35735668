"""From a file with partly wrong labels to a model, its page and the doubtful rows: what `postmax fit` does."""

from postmax.fitting.fit import Fit, fit
from postmax.fitting.folder import FitFolder
from postmax.fitting.source import fit_file

__all__ = ["Fit", "FitFolder", "fit", "fit_file"]
