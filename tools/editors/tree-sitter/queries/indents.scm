; @indent and @outdent are Helix's, the others nvim-treesitter's.
[(import) (parameters) (block) (train) (settings) (arguments) (list)
 (parenthesized)] @indent @indent.begin
["}" ")" "]"] @outdent @indent.branch
