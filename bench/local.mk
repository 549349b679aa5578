# what bench adds to the build
