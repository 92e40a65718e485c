"""Tables and matrices of distances from origins to destinations, which are vertices or places."""
