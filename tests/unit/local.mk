# one program a part
