"""What a training script is made of; torch and what exports know of a model come in, text goes out."""
