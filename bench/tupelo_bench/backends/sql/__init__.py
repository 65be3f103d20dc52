"""What both databases have in common: tables, statements, and how a program asks with them."""
