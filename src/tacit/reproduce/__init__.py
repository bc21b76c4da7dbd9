"""Published tables, regenerated: the paper's number beside ours. One module per paper."""
