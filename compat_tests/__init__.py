"""Cases written once against a module called `torch`, and what runs and compares them."""
