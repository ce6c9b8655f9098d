[(import) (block) (train) (settings) (arguments) (list)] @fold
