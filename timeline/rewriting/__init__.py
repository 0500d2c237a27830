"""Write stored runs anew under rules of redaction that were not known when they were recorded."""
