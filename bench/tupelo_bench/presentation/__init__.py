"""How figures, tables and numbers are described, whatever shows them; nothing here is drawn."""
