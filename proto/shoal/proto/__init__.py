"""What the processes say to each other: generated gRPC stubs and thin helpers around them."""
