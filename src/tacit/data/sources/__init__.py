"""One file per family of data sets; a module here that lists ``SOURCES`` is found by itself."""
