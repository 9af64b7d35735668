"""The detectors, one file each. A file that calls `postmax.checking.catalogue.register` adds one."""
