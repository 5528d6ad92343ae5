"""What teams can request: GPU classes, images, and the pool of capacity behind them."""
