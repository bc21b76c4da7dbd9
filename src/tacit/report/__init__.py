"""Results for people; reads files of a run."""
