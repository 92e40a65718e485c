"""Places, such as longitude and latitude: tables of places, their coordinate system, and the nearest vertices."""
