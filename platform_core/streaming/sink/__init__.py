"""What a batch writes to. The order of the commits makes a crash between any two harmless."""
