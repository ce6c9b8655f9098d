" Vim syntax file of sinter's model files.
if exists("b:current_syntax")
  finish
endif

syn iskeyword @,48-57,_

syn keyword sinterKeyword import let fn model train for in if else with as true false and or not
syn keyword sinterFunction conv conv_transpose linear batch_norm layer_norm group_norm dropout noise embedding attention dot_product_attention parameter max_pool avg_pool global_max_pool global_avg_pool zeros ones uniform normal kaiming xavier orthogonal whitening dirac relu sigmoid tanh exp sin cos log sqrt rsqrt stop_gradient abs floor ceil square relu6 leaky_relu elu celu gelu silu mish hard_swish clamp scale maximum minimum where one_hot softmax log_softmax argmax sum mean max min var flatten reshape transpose resize slice split concat stack pad normalize range tensor full round len fail channels_of height_of width_of cross_entropy mse l1 bce_with_logits sgd adam adamw lamb lars muon rmsprop adagrad lion nadam radam adan norm value identity shift ema lookahead piecewise cosine poly step exponential one_cycle cyclic plateau warmup constant cifar10 idx cifar100 image_folder webdataset lmdb image_table npy table tokens synthetic random_crop flip_lr cutout random_translate random_resized_crop alternating_flip brightness contrast cutmix mixup is_training draw chance iota per_channel warp_affine
syn match sinterKey "^\s*\%(data\|input\|batch\|epochs\|precision\|loss\|optimizer\|seed\|average\|accumulate\|shards\|optimizer_shards\|sync_batch_norm\|clip\|recompute\|steps\|eval\|checkpoint\|params\|freeze\|stop\)\>"
syn keyword sinterType f32 f16 bf16 act i32 u8 bool
syn match sinterName "\%(\<\%(fn\|model\|train\|let\|as\)\s\+\)\@<=\h\w*"
syn match sinterArgument "\<\l\w*\ze=[^=]"
syn match sinterNumber "\<\d\+\%(\.\d\+\)\=\%([eE][+-]\=\d\+\)\=%\="
syn match sinterUnit "\d\s*\zs\%(epochs\=\|steps\=\|KiB\|MiB\|GiB\)\>"
syn match sinterOperator "|>\|->\|==\|!=\|<=\|>=\|[-+*/^@<>]"
syn region sinterString start=+"+ skip=+\\[\\"]+ end=+"+ oneline
syn match sinterComment "#.*$" contains=@Spell

hi def link sinterKeyword Keyword
hi def link sinterFunction Function
hi def link sinterKey Statement
hi def link sinterType Type
hi def link sinterName Identifier
hi def link sinterArgument Identifier
hi def link sinterNumber Number
hi def link sinterUnit Number
hi def link sinterOperator Operator
hi def link sinterString String
hi def link sinterComment Comment

setlocal commentstring=#\ %s

let b:current_syntax = "sinter"
