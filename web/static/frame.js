import { watch } from "./net.js";

watch("", {});
