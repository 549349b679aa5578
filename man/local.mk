# what man adds to the build
