"""Apply rules of redaction to what was stored before they were known: placeholders that stand there stay."""
