"""What any program could use, and nothing of PCOR: whole files, HTML pieces, pictures, threads."""
