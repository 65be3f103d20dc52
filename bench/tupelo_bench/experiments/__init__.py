"""The experiments of the literature, one module each; `everything` lists them."""
