"""Find runs among many: by what was said in them, or by a trace."""
