"""Floor 5: verbs for humans."""
