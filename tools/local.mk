# what tools adds to the build
