"""Who exists, what each holds, who is asked."""
