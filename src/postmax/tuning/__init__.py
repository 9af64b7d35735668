"""Choose the settings of a table's rows by their accuracy on noisy validation labels, before the table is run."""
