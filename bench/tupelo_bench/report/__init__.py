"""What a reader sees: tables, CSV, figures and the page. Everything is made from the record."""
