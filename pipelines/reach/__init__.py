"""What is reached from some places within some time or distance: pieces of streets, and areas around them."""
