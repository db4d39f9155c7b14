"""What the service does, whatever asks for it: datasets, keys, questions, and who answers them."""
