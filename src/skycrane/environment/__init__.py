"""What surrounds the bodies: gravity, air and ground."""
