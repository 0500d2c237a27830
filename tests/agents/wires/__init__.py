"""The model wires that the scripted provider speaks, one module each: `read` what is asked, `write` what is said."""
