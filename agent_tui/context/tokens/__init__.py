"""From text, images and files to tokens: estimates where nothing was measured."""
