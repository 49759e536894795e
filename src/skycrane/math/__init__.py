"""Components, rotations and small linear algebra."""
