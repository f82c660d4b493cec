#include "textflag.h"

// func floatControl() uint64
TEXT ·floatControl(SB), NOSPLIT, $8-8
	STMXCSR tmp-8(SP)
	MOVL    tmp-8(SP), AX
	MOVQ    AX, ret+0(FP)
	RET

// func setFloatControl(value uint64)
TEXT ·setFloatControl(SB), NOSPLIT, $8-8
	MOVQ    value+0(FP), AX
	MOVL    AX, tmp-8(SP)
	LDMXCSR tmp-8(SP)
	RET
