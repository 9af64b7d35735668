"""From a file with partly wrong labels to a model, its page and the doubtful rows: what `postmax fit` does."""

from postmax.fitting.fit import Fit, FitRecord, fit
from postmax.fitting.folder import FitFolder
from postmax.fitting.source import FitRows, read_rows

__all__ = ["Fit", "FitFolder", "FitRecord", "FitRows", "fit", "read_rows"]
