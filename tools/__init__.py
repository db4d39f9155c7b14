"""What builds the documentation: pages, pictures, packages. No part of the library."""
