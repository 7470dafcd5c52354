"""What a web page is made of."""
