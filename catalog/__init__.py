"""What can be asked for: GPU classes, images, and the pool of capacity behind them."""
