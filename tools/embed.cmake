# cmake -DFROM=FILE -DTO=FILE.c -DNAME=SYMBOL -P embed.cmake: a text as an array
# of characters that ends in a zero byte.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO}
  "extern const unsigned char ${NAME}[];\n"
  "const unsigned char ${NAME}[] = {\n${bytes}0};\n")
