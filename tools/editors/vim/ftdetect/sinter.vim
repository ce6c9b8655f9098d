autocmd BufNewFile,BufRead *.net setfiletype sinter
